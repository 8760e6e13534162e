import { describe } from 'node:test';
import { answerContract } from './engine.answers.contract.ts';
import { corpusContract } from './engine.corpus.contract.ts';
import { endingContract, stopContract } from './engine.endings.contract.ts';
import { closingContract, hostileContract, requestContract } from './engine.requests.contract.ts';
import { streamContract } from './engine.streams.contract.ts';
import { serveWith, whyNoUws, type EngineName, type Serving } from '../support/engine/engines.ts';

/** What every engine promises in src/engine/edge.ts, but for what needs slow readers: see test/engine/stall.slow.test.ts. */
function engineContract(name: EngineName): void {
  const serving: Serving = (t, serve, overrides) => serveWith(t, name, serve, overrides);
  requestContract(serving);
  answerContract(serving);
  streamContract(serving);
  endingContract(serving);
  closingContract(serving);
  hostileContract(serving, name);
  corpusContract(serving, name);
  stopContract(serving);
}

describe('on uWebSockets.js', { skip: whyNoUws() ?? false }, () => engineContract('uws'));
describe('on node:http', () => engineContract('node'));
