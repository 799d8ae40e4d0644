"""Pages, tables and pictures: how views draw. Nothing here knows YARN's rules; views decide what to draw."""
