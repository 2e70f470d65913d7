/** Whether an operation takes effect. This decides what read-only keys may call, and whether errors have an outcome. */

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS']

/** A request, or a route with one or more methods. */
export interface Operation {
  readonly method: string | readonly string[]
  readonly config?: { readonly readOnly?: boolean } | undefined
  readonly routeOptions?: { readonly config?: { readonly readOnly?: boolean } }
}

/** By its method, or because its route is declared `readOnly`. */
export const isRead = ({ method, config, routeOptions }: Operation): boolean =>
  (config ?? routeOptions?.config)?.readOnly === true ||
  [method].flat().every((name) => SAFE_METHODS.includes(name))
