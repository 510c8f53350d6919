import { isRedisUnavailable } from '../../src/platform/redis.ts';
import { until } from '../support/wait.ts';

/**
 * Repeats the test's own request to Redis until it is answered: its own connections come back a little later than Redis, in a
 * cluster they may find out late that another node is the master, and on a busy machine a node is silent now and then.
 *
 * @param work  right when it is done twice
 * @param isPassing  whether another error is as harmless
 */
export async function untilAnswered<T>(
  work: () => Promise<T>,
  isPassing: (error: unknown) => boolean = () => false,
): Promise<T> {
  const { value } = await until(async () => {
    try {
      return { value: await work() };
    } catch (error) {
      if (!isRedisUnavailable(error) && !isPassing(error)) throw error;
      return null;
    }
  });
  return value;
}
