/** Signs in at the identity provider: authorization code with PKCE (OpenID Connect), in this tab. */
import { config } from '../base/config.ts'
import { begin, type Session } from './session.ts'

const STARTED = 'clearbatch.sign-in'

interface Started {
  readonly verifier: string
  readonly state: string
  readonly returnTo: string
}

interface Endpoints {
  readonly authorization_endpoint: string
  readonly token_endpoint: string
}

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')

const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)))
const redirectUri = (): string => `${location.origin}/signed-in`

async function endpoints(): Promise<Endpoints> {
  if (config.issuerUrl === null) throw new Error('this site has no identity provider: use an API key')
  const response = await fetch(`${config.issuerUrl.replace(/\/$/, '')}/.well-known/openid-configuration`)
  if (!response.ok) throw new Error(`the identity provider answered ${response.status}`)
  return (await response.json()) as Endpoints
}

/** Leaves the page. */
export async function startSignIn(): Promise<void> {
  const { authorization_endpoint } = await endpoints()
  const started: Started = { verifier: random(), state: random(), returnTo: location.pathname }
  sessionStorage.setItem(STARTED, JSON.stringify(started))
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(started.verifier))
  const query = new URLSearchParams({
    client_id: config.clientId,
    response_type: 'code',
    scope: 'openid',
    redirect_uri: redirectUri(),
    state: started.state,
    prompt: 'login',
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: 'S256',
  })
  location.assign(`${authorization_endpoint}?${query}`)
}

/** Completes the sign-in on the path to which the provider has redirected. Returns where the visitor came from. */
export async function finishSignIn(query: URLSearchParams): Promise<{ session: Session; returnTo: string }> {
  const started = JSON.parse(sessionStorage.getItem(STARTED) ?? 'null') as Started | null
  sessionStorage.removeItem(STARTED)
  const code = query.get('code')
  if (started === null || query.get('state') !== started.state || code === null)
    throw new Error(
      query.get('error_description') ?? query.get('error') ?? 'this sign-in was not started in this tab',
    )
  const { token_endpoint } = await endpoints()
  const response = await fetch(token_endpoint, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: config.clientId,
      redirect_uri: redirectUri(),
      code,
      code_verifier: started.verifier,
    }),
  })
  const answer = (await response.json()) as { access_token?: string; expires_in?: number; error?: string }
  if (!response.ok || answer.access_token === undefined)
    throw new Error(`the identity provider refused the sign-in: ${answer.error ?? response.status}`)
  const expiresAt = Date.now() + (answer.expires_in ?? 3_600) * 1_000
  return { session: await begin(`Bearer ${answer.access_token}`, expiresAt), returnTo: started.returnTo }
}
