/** The fields that a model needs to choose a service. Others, such as labels for people, are in get_service or of no use to it. */
export const FOUND_FIELDS = 'id,name,description,price,max_price,free_calls,category,quality,rated';
/** Services on a page if the model states no number. */
export const PAGE = 20;

/** Maximum bytes of a page of up to PAGE services as JSON: more would fill the context of a model. */
const MAX_BYTES = 10_000;
const MAX_CATEGORIES = 15;
/**
 * The lengths to which descriptions and names are cut, step by step, until a page fits. With the last row every page fits: a
 * service then has at most 375 bytes.
 */
const CUTS = [
  { description: 200, name: 100 },
  { description: 100, name: 100 },
  { description: 60, name: 60 },
  { description: 30, name: 30 },
  { description: 10, name: 20 },
] as const;

type Service = { readonly name: string; readonly description: string };

/**
 * An answer of /discover, as `discover_services` shows it: the largest categories, and texts cut until it has at most MAX_BYTES, or
 * a proportional size for each of `limit` services.
 *
 * Tested by test/mcp/found-services.test.ts.
 */
export function fitted(found: Readonly<Record<string, unknown>>, limit: number): Record<string, unknown> {
  const maxBytes = (MAX_BYTES / PAGE) * Math.max(PAGE, limit);
  const categories = (found.categories as readonly unknown[]).slice(0, MAX_CATEGORIES);
  const services = found.services as readonly Service[];
  let page: Record<string, unknown> = {};
  for (const cut of CUTS) {
    page = { ...found, services: services.map((service) => shortened(service, cut)), categories };
    if (Buffer.byteLength(JSON.stringify(page)) <= maxBytes) break;
  }
  return page;
}

const shortened = (service: Service, cut: (typeof CUTS)[number]): Service => ({
  ...service,
  name: shorten(service.name, cut.name),
  description: shorten(service.description, cut.description),
});

/** Never splits a surrogate pair. A text that /discover has cut already keeps its one ellipsis. */
function shorten(text: string, maxCharacters: number): string {
  const characters = [...text];
  if (characters.length <= maxCharacters + (text.endsWith('…') ? 1 : 0)) return text;
  return `${characters.slice(0, maxCharacters).join('')}…`;
}
