import { testFailover } from '../support/redis/failover.ts';
import { testCluster } from '../support/redis/topologies.ts';

testFailover('the master of a slot in a Cluster', (t) => testCluster(t, 1));
