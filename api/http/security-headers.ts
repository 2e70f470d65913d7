/** The security headers of helmet, computed once: they are the same for every answer, and its plugin computes them for each. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import helmet, { type HelmetOptions } from 'helmet'
import type { App } from './types.ts'

/**
 * Headers that browsers apply to documents only, or no longer at all; `frame-ancestors` of the policy replaces X-Frame-Options. Each costs as much as
 * a hundredth of a public read.
 */
const OF_DOCUMENTS = {
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  referrerPolicy: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xFrameOptions: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
} as const

const CONTENT_SECURITY_POLICY = {
  useDefaults: false,
  directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
}

function securityHeaders(options: HelmetOptions): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  const response = {
    setHeader: (name: string, value: string) => {
      headers[name.toLowerCase()] = value
    },
    removeHeader() {},
  }
  helmet({ contentSecurityPolicy: CONTENT_SECURITY_POLICY, ...options })(
    {} as IncomingMessage,
    response as unknown as ServerResponse,
    (error) => {
      if (error !== undefined) throw error
    },
  )
  return headers
}

/** For answers that are documents. */
export const DOCUMENT_HEADERS = securityHeaders({})

/** A route may replace a header in its answer. */
export function addSecurityHeaders(app: App): void {
  const headers = securityHeaders(OF_DOCUMENTS)
  app.addHook('onRequest', (_request, reply, done) => {
    reply.headers(headers)
    done()
  })
}
