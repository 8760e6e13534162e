import { EXPORT, EXPORT_BODY, EXPORT_LIST, REMOVED_EXPORT } from '../exports/export.ts';
import { ITEM_PAGE } from '../items/operations.ts';
import {
  CHECKPOINT,
  END,
  FAILURE,
  HEALTH,
  ITEM,
  PAGE,
  PARTITIONS,
  PROBLEM,
  PROBLEM_PAGE,
  TALLY,
} from '../serialize/schemas.ts';
import { USER_PAGE } from '../users/operations.ts';
import { REMOVED_USER, USER, USER_BODY, USER_PATCH } from '../users/user.ts';
import type { Schema } from './schema.ts';

/** Schemas that have a name of their own in /openapi.json; all others stand where they are used. */
export const COMPONENTS: Readonly<Record<string, Schema>> = {
  Item: ITEM,
  ItemPage: ITEM_PAGE,
  Page: PAGE,
  Partitions: PARTITIONS,
  Checkpoint: CHECKPOINT,
  End: END,
  Failure: FAILURE,
  Tally: TALLY,
  User: USER,
  UserBody: USER_BODY,
  UserPatch: USER_PATCH,
  UserPage: USER_PAGE,
  RemovedUser: REMOVED_USER,
  Export: EXPORT,
  ExportBody: EXPORT_BODY,
  ExportList: EXPORT_LIST,
  RemovedExport: REMOVED_EXPORT,
  Health: HEALTH,
  Problem: PROBLEM,
  ProblemPage: PROBLEM_PAGE,
};
