const names = new Map<string, string>();

/** Remembers the names, for the heading of a service's page while that is loading. */
export function nameServices(services: readonly { readonly id: string; readonly name: string }[]): void {
  for (const { id, name } of services) names.set(id, name);
}

export const nameOfService = (id: string): string => names.get(id) ?? 'Service';
