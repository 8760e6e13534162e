import { createRequire } from 'node:module';
import type * as typebox from '@sinclair/typebox';

export type { Static, TSchema } from '@sinclair/typebox';

/**
 * Builds JSON schemas that are TypeScript types, too: validation, serializers and settings are made of them. Required,
 * because its ES modules are 266 files, which take a second of a start through a loader.
 */
export const { Type } = createRequire(import.meta.url)('@sinclair/typebox') as typeof typebox;
