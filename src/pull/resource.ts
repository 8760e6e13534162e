/** The columns that tables of items begin with, and those of other resources. They are the server's. */
const COLUMNS_OF_ITEMS = ['id', 'category', 'price'];
const COLUMNS = ['id'];

/** Whether a stream is that of items. */
export function isOfItems({ pathname }: URL): boolean {
  return pathname.endsWith('/items/stream');
}

/** The columns that a table of this stream begins with. */
export function firstColumns(stream: URL): readonly string[] {
  return isOfItems(stream) ? COLUMNS_OF_ITEMS : COLUMNS;
}
