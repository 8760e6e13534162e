/** The one door to the bson package: encoding what we write, and looking at single values of what we read. */
export {
  BSON,
  BSONRegExp,
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
