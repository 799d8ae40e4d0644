package org.apache.hadoop.yarn.client.cli;

import org.apache.hadoop.yarn.conf.YarnConfiguration;

/** Prints when the ResourceManager started, as `yarn top` asks for it over HTTP, and then is `yarn top`. */
public final class Top {
    private Top() {}

    public static void main(String[] arguments) throws Exception {
        TopCLI top = new TopCLI();
        top.setConf(new YarnConfiguration());
        System.out.println("started " + top.getRMStartTime());
        TopCLI.main(arguments);
    }
}
