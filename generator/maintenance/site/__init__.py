"""The page on which users choose a backend and view its files before rendering it."""
