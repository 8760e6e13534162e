import type * as client from '../../../clients/javascript/sluice.ts';
import type { CaseReader } from './readers.ts';

export function readByModule(module: typeof client, job: Parameters<CaseReader>[0]): ReturnType<CaseReader>;
