/** Response headers that clients can rely on, as the API description defines them. */

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Headers of the answer besides those of `cached` and of the limits. */
    readonly sends?: readonly HeaderName[]
  }
}

const text = (description: string) => ({ description, schema: { type: 'string' } })
const count = (description: string) => ({ description, schema: { type: 'integer', minimum: 0 } })

export const HEADERS = {
  'X-Request-Id': text('Id of the request, which its log lines and its error contain.'),
  'RateLimit-Limit': count('Requests per window of the limit that is reached first.'),
  'RateLimit-Remaining': count('Requests that are left of it in this window.'),
  'RateLimit-Reset': count('Seconds until the window ends.'),
  'Retry-After': {
    description: 'Seconds after which the same request may succeed; below one second a decimal fraction.',
    schema: { type: 'number', minimum: 0 },
  },
  ETag: text('Digest of the answer. A request with `If-None-Match` receives 304 while it is the same.'),
  'Cache-Control': text('For how long caches may keep the answer.'),
  'Content-Disposition': text('Name of the file, if the answer is one.'),
  Vary: text('Request headers that select the form of the answer.'),
} as const

export type HeaderName = keyof typeof HEADERS
