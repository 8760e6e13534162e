import fastJson from 'fast-json-stringify';
import { EXPORT, EXPORT_LIST, REMOVED_EXPORT, type Export, type RemovedExport } from '../exports/export.ts';
import { Type, type Static } from '../schema.ts';
import {
  CHECKPOINT,
  END,
  FAILURE,
  HEALTH,
  PAGE,
  PARTITIONS,
  PROBLEM,
  PROBLEM_PAGE,
  type HealthDocument,
  type PageDocument,
  type ProblemDocument,
  type ProblemPage,
  type TallyDocument,
} from './schemas.ts';
import { REMOVED_USER, USER, type RemovedUser, type User } from '../users/user.ts';

interface Serializers {
  /** An item in the form item.ts makes of it: `id` first, then all other fields in the object's order. */
  item(value: Readonly<Record<string, unknown>>): string;
  problem(value: ProblemDocument): string;
  checkpoint(value: { readonly checkpoint: TallyDocument }): string;
  end(value: { readonly end: TallyDocument }): string;
  failure(value: { readonly error: ProblemDocument }): string;
  partitions(value: { readonly partitions: readonly { readonly url: string }[] }): string;
  problemPage(value: ProblemPage): string;
  page(value: PageDocument): string;
  health(value: HealthDocument): string;
  user(value: User): string;
  removedUser(value: RemovedUser): string;
  export(value: Export): string;
  exports(value: Static<typeof EXPORT_LIST>): string;
  removedExport(value: RemovedExport): string;
}

/**
 * Every precompiled JSON serializer of the server. A schema is a whitelist: what it does not name is not written, and
 * fields come in its order. Compiled once, at start.
 */
export const serializers: Serializers = {
  item: fastJson({ type: 'object', properties: { id: {} }, additionalProperties: true }),
  problem: fastJson(PROBLEM),
  checkpoint: fastJson(CHECKPOINT),
  end: fastJson(END),
  failure: fastJson(FAILURE),
  partitions: fastJson(PARTITIONS),
  problemPage: fastJson(PROBLEM_PAGE),
  health: fastJson(HEALTH),
  page: fastJson(PAGE),

  // Nothing is required here: fast-json-stringify writes required fields first, and lists have the stored order.
  user: fastJson(Type.Partial(USER)),
  removedUser: fastJson(REMOVED_USER),
  export: fastJson(EXPORT),
  exports: fastJson(EXPORT_LIST),
  removedExport: fastJson(REMOVED_EXPORT),
};
