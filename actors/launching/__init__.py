"""`tfray launch`: the processes of a program's tasks."""
