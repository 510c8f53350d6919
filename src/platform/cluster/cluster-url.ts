/** A Redis Cluster as `REDIS_URL` names it. */
type ClusterUrl = {
  /** `host:port` of the nodes that are asked first. One answering node is enough, because it names the others. */
  readonly seeds: readonly string[];
  /** The URL of one node, with the credentials and TLS of the cluster. @param address `host:port` */
  urlOf(address: string): string;
};

const CLUSTER_URL = /^(rediss?)\+cluster:\/\/(?:([^@/?#]*)@)?([^@/?#]+)$/;

export const isClusterUrl = (url: string): boolean => /^rediss?\+cluster:/.test(url);

/**
 * Reads `redis+cluster://[user:password@]host:port,host:port` (`rediss+cluster` with TLS).
 *
 * @throws Error that says what is wrong; it never shows the password
 */
export function parseClusterUrl(url: string): ClusterUrl {
  const found = CLUSTER_URL.exec(url);
  const [, protocol = '', credentials, hosts = ''] = found ?? [];
  const urlOf = (address: string): string =>
    `${protocol}://${credentials === undefined ? '' : `${credentials}@`}${address}`;
  const seeds = hosts.split(',');
  for (const seed of seeds) {
    if (found === null || !URL.canParse(urlOf(seed)) || !/:\d+$/.test(seed)) {
      throw new Error(
        'the URL of a Redis Cluster must be redis+cluster://[user:password@]host:port,host:port,… ' +
          '(rediss+cluster with TLS), without a path: a cluster has no database numbers',
      );
    }
  }
  return { seeds, urlOf };
}
