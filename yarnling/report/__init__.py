"""Pages, tables and pictures: how views draw. Nothing in it knows YARN's rules; views decide what to draw."""
