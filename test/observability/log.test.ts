import { describe, expect, it } from 'vitest';
import { describeError } from '../../src/observability/log.ts';

describe('an error in the log', () => {
  it('has its message and cause, and nothing that a library hung on it', () => {
    const error = Object.assign(new Error('WRONGPASS'), {
      code: 'E1',
      command: { name: 'hello', args: ['3', 'AUTH', 'default', 'hunter2'] },
      cause: Object.assign(new Error('inner'), { secret: 'hunter2' }),
    });
    const text = JSON.stringify(describeError(error));
    expect(text).toContain('WRONGPASS');
    expect(text).toContain('inner');
    expect(text).toContain('"code":"E1"');
    expect(text).not.toContain('hunter2');
  });

  it('need not be an error', () => {
    expect(describeError('text')).toEqual({ message: 'text' });
  });
});
