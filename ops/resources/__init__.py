"""State on devices that operations work on: queues, barriers, readers, datasets, random access to rows."""
