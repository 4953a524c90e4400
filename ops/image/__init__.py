"""Operations on images: files, colours, sizes, boxes, measures of quality."""
