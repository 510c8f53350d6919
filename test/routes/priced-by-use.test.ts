import { describe, expect, it } from 'vitest';
import { bodyOf } from '../support/listings.ts';
import { BODY, catalog, create, provider, refused, request, useServices } from './use-services.ts';

useServices();

const patch = async (id: string, body: object, query = '') =>
  bodyOf(await request(`PATCH /services/${id}${query}`, { by: provider, body }));
const fault = async (id: string, body: object): Promise<string> =>
  (await refused(`PATCH /services/${id}`, { by: provider, body })).message;
const chat = { method: 'POST', path: '/chat', summary: 'Answers a question' };

describe('a listing that is priced by use', () => {
  it('has a max price, which is shown, which can be changed, and which null removes', async () => {
    const id = await create({ price: 0.002, max_price: 0.05 });
    expect(bodyOf(await request(`GET /services/${id}`))).toMatchObject({
      price: 0.002,
      max_price: 0.05,
      price_label: '$0.002 up to $0.05 per call',
    });
    expect(catalog.get(id)).toMatchObject({ priceMicros: 2_000, maxPriceMicros: 50_000 });
    expect(await patch(id, { max_price: 0.04 })).toMatchObject({ price: 0.002, max_price: 0.04 });
    expect(await patch(id, { max_price: 9 }, '?dry_run=true')).toMatchObject({ max_price: 9 });
    expect(await patch(id, { name: 'Chat' })).toMatchObject({ max_price: 0.04 });
    const ended = await patch(id, { max_price: null });
    expect([ended.max_price, ended.price_label]).toEqual([undefined, '$0.002 per call']);
  });

  it('cannot have a max price below the price, whichever of the two is changed', async () => {
    const refusal = /^max_price: must be at least the price/;
    expect((await refused('POST /services', { by: provider, body: { ...BODY, max_price: 0.001 } })).message).toMatch(
      refusal,
    );
    const id = await create({ price: 0.002, max_price: 0.05 });
    expect(await fault(id, { max_price: 0.001 })).toMatch(refusal);
    expect(await fault(id, { price: 0.06 })).toMatch(refusal);
    expect(await fault(id, { max_price: 0.0000001 })).toMatch(/^max_price: must be a number of USD/);
    expect(await patch(id, { price: 0.06, max_price: 0.06 })).toMatchObject({ price: 0.06, max_price: 0.06 });
  });

  it('has operations with their own max prices, which may exceed its own only with only_operations', async () => {
    const id = await create({ price: 0.002, max_price: 0.05 });
    const dear = { operations: [{ ...chat, price: 0.001, max_price: 0.06 }] };
    expect(await fault(id, dear)).toMatch(/^operations: an operation may cost more than the listing only with/);
    expect(await patch(id, { ...dear, only_operations: true })).toMatchObject(dear);
    expect(await patch(id, { operations: [{ method: 'POST', path: '/chat', price: null }] })).toMatchObject({
      operations: [{ ...chat, max_price: 0.06 }],
    });
    expect(await fault(id, { price: 0.08, max_price: 0.09 })).toMatch(/^operations: the max_price of an operation/);
    expect(await fault(id, { operations: [{ ...chat, price: 0.07 }] })).toMatch(
      /^operations.*max_price: must be at least/,
    );
    const cleared = await patch(id, { operations: [{ method: 'POST', path: '/chat', max_price: null }] });
    expect(cleared.operations).toEqual([chat]);
  });

  it('has tools with max prices, if the listing is an MCP server', async () => {
    const tools = [
      { tool: 'ask', price: 0.001, max_price: 0.01 },
      { tool: 'list', price: 0 },
    ];
    const id = await create({ protocol: 'mcp', price: 0.002, max_price: 0.05, operations: tools });
    expect(bodyOf(await request(`GET /services/${id}`)).operations).toEqual(tools);
    expect(catalog.get(id)?.operationTerms).toBe('[["ask",1000,10000],["list",0,null]]');
  });
});
