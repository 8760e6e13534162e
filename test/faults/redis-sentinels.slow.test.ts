import { testFailover } from '../support/redis/failover.ts';
import { testSentinels } from '../support/redis/topologies.ts';

testFailover('the master that Sentinels watch', (t) => testSentinels(t));
