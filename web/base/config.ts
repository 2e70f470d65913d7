/** Where the page finds the exchange: `config.json` beside it, written by the api or by the operator of a static host. */

export interface PageConfig {
  /** Empty: the origin of the page. */
  readonly apiUrl: string
  /** Null: visitors only read. */
  readonly issuerUrl: string | null
  readonly clientId: string
  /** Nodes that a visitor may choose; none is used without that choice. */
  readonly rpcUrls: readonly string[]
}

interface ConfigFile {
  readonly api_url?: string
  readonly issuer_url?: string | null
  readonly client_id?: string
  readonly rpc_urls?: readonly string[]
}

async function loadConfig(): Promise<PageConfig> {
  const response = await fetch('/config.json', { cache: 'no-cache' })
  const file = (response.ok ? await response.json() : {}) as ConfigFile
  return {
    apiUrl: (file.api_url ?? location.origin).replace(/\/$/, ''),
    issuerUrl: file.issuer_url ?? null,
    clientId: file.client_id ?? 'clearbatch',
    rpcUrls: file.rpc_urls ?? [],
  }
}

export const config = await loadConfig()
