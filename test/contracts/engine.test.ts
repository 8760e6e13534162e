import { describe } from 'node:test';
import { answerContract } from './engine.answers.contract.ts';
import { corpusContract } from './engine.corpus.contract.ts';
import { endingContract } from './engine.endings.contract.ts';
import { hostileContract } from './engine.hostile.contract.ts';
import { requestContract } from './engine.requests.contract.ts';
import { stopContract } from './engine.stop.contract.ts';
import { streamContract } from './engine.streams.contract.ts';
import { whyNoUws, type EngineName } from '../support/engine/engines.ts';

/** What every engine promises in src/engine/edge.ts, but for what needs slow readers: see engine-slow.test.ts. */
function engineContract(name: EngineName): void {
  requestContract(name);
  answerContract(name);
  streamContract(name);
  endingContract(name);
  hostileContract(name);
  corpusContract(name);
  stopContract(name);
}

describe('on uWebSockets.js', { skip: whyNoUws() ?? false }, () => engineContract('uws'));
describe('on node:http', () => engineContract('node'));
