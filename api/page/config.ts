/** Where the page is, and what it may connect to besides this api. */
import { type Env, environment, rejectVariable } from '../../service/environment.ts'

export interface PageConfig {
  /** The built page. */
  readonly dir: string
  /** The identity provider at which the page signs in; null: visitors only read. */
  readonly issuerUrl: string | null
  /** The page's public client at the identity provider. */
  readonly clientId: string
  /** Nodes that a visitor may choose for the comparison of proofs with the chain. None is used without that choice. */
  readonly rpcUrls: readonly string[]
}

/** Null without `PAGE_DIR`: the api then serves no page. */
export function readPage(env: Env, process: string): PageConfig | null {
  const { optional, text } = environment(env, process)
  const dir = optional('PAGE_DIR')
  if (dir === null) return null
  return {
    dir,
    issuerUrl: optional('AUTH_ISSUER'),
    clientId: text('PAGE_CLIENT_ID', 'clearbatch'),
    rpcUrls: (optional('PAGE_RPC_URLS') ?? '').split(',').filter(Boolean).map(requireUrl),
  }
}

function requireUrl(value: string): string {
  const url = URL.parse(value.trim())
  if (url !== null && ['http:', 'https:'].includes(url.protocol)) return value.trim()
  return rejectVariable(
    'PAGE_RPC_URLS',
    `contains ${JSON.stringify(value)}: expected HTTP URLs, separated by commas`,
  )
}
