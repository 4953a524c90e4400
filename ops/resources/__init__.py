"""State that operations keep on devices: queues, barriers, accumulators, readers, datasets, row indexes."""
