import { DAY_DROPPED, type FlushResult } from './flush.ts';

type ErrorLog = { error(fields: object, message: string): void };

/** Logs the events of a flush that were put aside: one line each, but one for all whose day was dropped, which may be thousands. */
export function reportRejected({ rejected, unkept }: FlushResult, log: ErrorLog): void {
  const isLate = ({ error }: { readonly error: string }): boolean => error === DAY_DROPPED;
  const late = rejected.filter(isLate).length;
  if (late > 0) log.error({ events: late }, 'usage events of dropped days put aside in rejected_events');
  for (const entry of rejected) {
    const line = { shard: entry.shard, stream_id: entry.id, reason: entry.error };
    if (unkept.includes(entry))
      log.error(
        { ...line, fields: entry.fields },
        'usage event refused even by rejected_events: only this log line keeps it',
      );
    else if (!isLate(entry)) log.error(line, 'usage event put aside in rejected_events');
  }
}
