/** The only module that imports the bson package, for what we write and for single values that we read. */
export {
  BSON,
  BSONRegExp,
  BSONSymbol,
  Binary,
  Code,
  Decimal128,
  Double,
  EJSON,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
  UUID,
  onDemand,
} from 'bson';
export type { Document } from 'bson';
