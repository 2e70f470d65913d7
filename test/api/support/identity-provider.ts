/** Publishes the keys of an identity provider over HTTP, and signs its tokens. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { Env } from './exchange-fixture.ts'

export const ISSUER = 'https://identity.example'
export const AUDIENCE = 'clearbatch'

export interface Signing {
  readonly kid?: string | null
  readonly alg?: string
  readonly key?: Parameters<SignJWT['sign']>[0]
}

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>

export class IdentityProvider {
  readonly #server: Server
  readonly #keys = new Map<string, KeyPair>()
  #published: JWK[] = []
  /** Requests for the keys so far. */
  requests = 0
  /** Answers 503 instead of the keys. */
  isDown = false

  private constructor() {
    this.#server = createServer((_request, response) => {
      this.requests++
      response.statusCode = this.isDown ? 503 : 200
      response.end(JSON.stringify({ keys: this.#published }))
    })
  }

  static async start(): Promise<IdentityProvider> {
    const provider = new IdentityProvider()
    await provider.addKey('one')
    await new Promise<void>((resolve) => provider.#server.listen(0, '127.0.0.1', resolve))
    return provider
  }

  stop(): void {
    this.#server.close()
  }

  async addKey(kid: string): Promise<KeyPair> {
    const pair = await generateKeyPair('ES256', { extractable: true })
    this.#keys.set(kid, pair)
    this.#published.push({ ...(await exportJWK(pair.publicKey)), kid, alg: 'ES256' })
    return pair
  }

  /** Takes all keys but this one out of the published set. */
  keepOnly(kid: string): void {
    this.#published = this.#published.filter((key) => key.kid === kid)
  }

  publicKey(kid = 'one'): JWK {
    return this.#published.find((key) => key.kid === kid) as JWK
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/keys`
  }

  /** The environment of an api that trusts this provider. */
  get env(): Env {
    return { AUTH_JWKS_URL: this.url, AUTH_ISSUER: ISSUER, AUTH_AUDIENCE: AUDIENCE }
  }

  /** A token that is valid for five minutes, unless the claims say otherwise. */
  token(claims: Record<string, unknown>, signing: Signing = {}): Promise<string> {
    const { kid = 'one', alg = 'ES256' } = signing
    const key = signing.key ?? (this.#keys.get(kid ?? 'one') as KeyPair).privateKey
    const now = Math.floor(Date.now() / 1000)
    return new SignJWT({ iss: ISSUER, aud: AUDIENCE, iat: now, exp: now + 300, ...claims })
      .setProtectedHeader({ alg, ...(kid === null ? {} : { kid }) })
      .sign(key)
  }
}
