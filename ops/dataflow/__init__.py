"""Operations on queues, barriers, tables, readers and datasets."""
