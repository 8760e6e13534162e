import { describe } from 'node:test';
import { engineContract } from './engine.contract.ts';
import { whyNoUws } from './support/engines.ts';

const reason = whyNoUws();

describe('on uWebSockets.js', { skip: reason ?? false }, () => engineContract('uws'));
describe('on node:http', () => engineContract('node'));
