// @ts-check
import { direct } from './direct.mjs';
import { fastify } from './fastify.mjs';
import { nginx, nginxLua } from './nginx.mjs';
import {
  tollgate,
  tollgateAccessLog,
  tollgateAll,
  tollgateBefore,
  tollgateCluster,
  tollgateClusterReplica,
  tollgateDefault,
  tollgateReplica,
  tollgateTwo,
} from './tollgate.mjs';

/**
 * @typedef {'direct' | 'nginx' | 'nginx-lua' | 'fastify' | 'tollgate' | 'tollgate-default' | 'tollgate-all' | 'tollgate-two'
 *   | 'tollgate-replica' | 'tollgate-cluster' | 'tollgate-cluster-replica' | 'tollgate-access-log' | 'tollgate-before'} PeerName
 */

/** @type {Record<PeerName, import('./peer.mjs').PeerKind>} */
export const peerKinds = {
  direct,
  nginx,
  'nginx-lua': nginxLua,
  fastify,
  tollgate,
  'tollgate-access-log': tollgateAccessLog,
  'tollgate-before': tollgateBefore,
  'tollgate-default': tollgateDefault,
  'tollgate-all': tollgateAll,
  'tollgate-two': tollgateTwo,
  'tollgate-replica': tollgateReplica,
  'tollgate-cluster': tollgateCluster,
  'tollgate-cluster-replica': tollgateClusterReplica,
};
