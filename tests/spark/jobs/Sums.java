import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.SinkFunction;

/** Sums the numbers below 1000 by their remainder of 3 and writes a file for each sum into the directory given. */
public class Sums {
    public static class Write implements SinkFunction<Tuple2<Long, Long>> {
        private final String directory;

        public Write(String directory) {
            this.directory = directory;
        }

        @Override
        public void invoke(Tuple2<Long, Long> sum, Context context) throws Exception {
            Files.writeString(Path.of(directory, "sum-" + sum.f0), sum.f1.toString());
        }
    }

    public static class ByRemainder implements MapFunction<Long, Tuple2<Long, Long>> {
        @Override
        public Tuple2<Long, Long> map(Long number) {
            return Tuple2.of(number % 3, number);
        }
    }

    public static class Remainder implements KeySelector<Tuple2<Long, Long>, Long> {
        @Override
        public Long getKey(Tuple2<Long, Long> pair) {
            return pair.f0;
        }
    }

    public static void main(String[] arguments) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment();
        // Each sum is written once, at the end.
        environment.setRuntimeMode(RuntimeExecutionMode.BATCH);
        environment.setParallelism(2);
        environment.fromSequence(0, 999).map(new ByRemainder()).keyBy(new Remainder()).sum(1).addSink(new Write(arguments[0]));
        environment.execute("sums");
    }
}
