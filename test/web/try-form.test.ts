import { describe, expect, it } from 'vitest';
import { costOf, formOf, mcpMessage, requestOf } from '../../web/src/site/try-form.ts';

const operation = { method: 'POST', path: '/v1/{model}', price: 0.01, price_label: '', example: { body: { a: 1 } } };
const service = {
  id: 'id',
  name: '',
  description: '',
  price: 0.002,
  price_label: '',
  category: '',
  quality: 50,
  rated: false,
  proxy_path: '/api/v1/proxy/id/',
  protocol: 'http' as const,
  timeout_seconds: 60,
  only_operations: false,
  call: { method: 'GET', url: '/api/v1/proxy/id/', headers: {} },
  operations: [operation],
};
const KEY = 'acf_x:sk_y';

describe('the form of a call', () => {
  it('sends the example with the key in a header, and never for more than the price shown', () => {
    const form = { ...formOf(service, operation), values: { model: 'a b' } };
    expect(requestOf(service, form, KEY, costOf(service, operation, form))).toEqual({
      request: {
        method: 'POST',
        target: '/api/v1/proxy/id/v1/a%20b',
        headers: {
          Authorization: `Bearer ${KEY}`,
          'X-ACF-Max-Amount': '0.010000',
          'Content-Type': 'application/json',
        },
        body: '{\n  "a": 1\n}',
      },
    });
    expect(requestOf(service, form, KEY, { price: 0.000001 })).toMatchObject({
      request: { headers: { 'X-ACF-Max-Amount': '0.000001' } },
    });
  });

  it('may cost the maximum if the price depends on use, and requests the final cost', () => {
    const byUse = { ...operation, max_price: 0.05 };
    const form = { ...formOf(service, byUse), values: { model: 'x' } };
    expect(requestOf(service, form, KEY, costOf(service, byUse, form))).toMatchObject({
      request: { headers: { 'X-ACF-Max-Amount': '0.050000', 'X-ACF-Usage-Event': 'true' } },
    });
    expect(requestOf(service, form, KEY, operation)).not.toHaveProperty('request.headers.X-ACF-Usage-Event');
  });

  it('says why a call cannot be sent', () => {
    const form = { ...formOf(service, operation), values: { model: 'x' } };
    const fault = (changes: object) => requestOf(service, { ...form, ...changes }, KEY, { price: 0 });
    expect(fault({ values: { model: '' } })).toEqual({ fault: 'pathValue', name: 'model' });
    expect(fault({ values: { model: '..' } })).toEqual({ fault: 'dots', name: '' });
    expect(fault({ headers: [{ name: 'Authorization', value: 'x' }] })).toEqual({
      fault: 'ourHeader',
      name: 'Authorization',
    });
    expect(fault({ headers: [{ name: 'X-ACF-Max-Amount', value: '9' }] })).toMatchObject({ fault: 'ourHeader' });
    expect(fault({ headers: [{ name: 'Host', value: 'x' }] })).toEqual({ fault: 'browserHeader', name: 'Host' });
    expect(fault({ headers: [{ name: 'a b', value: 'x' }] })).toEqual({ fault: 'header', name: 'a b' });
    expect(fault({ headers: [{ name: 'a', value: 'x\ny' }] })).toEqual({ fault: 'header', name: 'a' });
    expect(fault({ credentials: { authorization: 'a', 'x-api-key': 'b' } })).toMatchObject({ fault: 'twoKeys' });
  });

  it('forwards credentials for the service, and sends the key in the other header', () => {
    const form = { ...formOf(service, null), credentials: { authorization: 'Bearer mine', 'x-auth-token': '' } };
    expect(requestOf(service, form, KEY, { price: 0 })).toMatchObject({
      request: { headers: { 'X-Api-Key': KEY, authorization: 'Bearer mine', 'X-ACF-Forward': 'authorization' } },
    });
    expect(requestOf(service, { ...form, credentials: {} }, KEY, { price: 0 })).not.toHaveProperty(
      'request.headers.X-Api-Key',
    );
  });

  it('keeps a typed path byte for byte, and encodes only what no path can contain', () => {
    const form = { ...formOf(service, null), path: "/a%20b//c;d?x='1'&y=ü z" };
    expect(requestOf(service, form, KEY, { price: 0 })).toMatchObject({
      request: { target: '/api/v1/proxy/id/a%20b//c;d?x=%271%27&y=%C3%BC%20z' },
    });
  });

  it('knows that only tool calls cost money, each its own price', () => {
    const operations = [{ tool: 'dear', price: 0.5, price_label: '' }];
    const mcp = { ...service, protocol: 'mcp' as const, proxy_path: '/api/v1/proxy/id', operations };
    const form = formOf(mcp, mcp.operations[0] ?? null);
    expect(costOf(mcp, null, form)).toMatchObject({ price: 0.5 });
    expect(costOf(mcp, null, { ...form, body: mcpMessage('other') })).toMatchObject({ price: 0.002 });
    expect(costOf(mcp, null, { ...form, body: mcpMessage(null) })).toEqual({ price: 0 });
    expect(requestOf(mcp, form, KEY, { price: 0.5 })).toMatchObject({ request: { target: '/api/v1/proxy/id' } });
  });
});
