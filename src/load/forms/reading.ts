/** Reads the decoded body of one stream as it comes, and keeps none of it. */
export interface RowReading {
  /** The number of rows that end in this piece. Throws Mismatched when it is not of the form. */
  add(piece: Buffer): number;
  /** The body has ended as HTTP says. Throws Mismatched when it is not whole. */
  end(): void;
}
