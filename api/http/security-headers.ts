/** The security headers of helmet, computed once: they are the same for every answer, and its plugin computes them for each. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import helmet from 'helmet'
import type { App } from './types.ts'

const OPTIONS = {
  contentSecurityPolicy: {
    useDefaults: false,
    directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  },
}

function securityHeaders(): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  const response = {
    setHeader: (name: string, value: string) => {
      headers[name.toLowerCase()] = value
    },
    removeHeader() {},
  }
  helmet(OPTIONS)({} as IncomingMessage, response as unknown as ServerResponse, (error) => {
    if (error !== undefined) throw error
  })
  return headers
}

/** A route may replace a header in its answer. */
export function addSecurityHeaders(app: App): void {
  const headers = securityHeaders()
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers)
    done()
  })
}
