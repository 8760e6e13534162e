/** A JSON Schema (2020-12): one of TypeBox, the same that validates or serializes. */
export type Schema = Readonly<Record<string, unknown>>;
