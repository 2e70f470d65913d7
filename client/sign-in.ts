/**
 * Signs in at the identity provider of the local stack with a wallet: authorization code with PKCE, and EIP-4361.
 */
import { type ClearbatchError, errorOfResponse, errorWithoutResponse } from './errors.ts'

/** A `Signer` of an account, or any ethers wallet. */
export interface SignInWallet {
  readonly address: string
  signMessage(message: string): string | Promise<string>
}

export interface SignInOptions {
  /** `issuer_url` from `stack.json`. */
  readonly issuerUrl: string
  readonly wallet: SignInWallet
  readonly fetch?: typeof fetch
}

export interface SignedIn {
  /** Token for `Authorization: Bearer <token>`. */
  readonly accessToken: string
  /** Unix milliseconds. */
  readonly expiresAt: number
}

/**
 * Public OAuth client for programs. Its redirect URL is never opened: the program reads the code from the
 * redirect response.
 */
const CLIENT_ID = 'clearbatch'
const REDIRECT_URI = 'http://127.0.0.1/callback'
const TIMEOUT_MS = 10_000

/** Sends requests with the cookies of earlier responses, and follows no redirect. */
function createAgent(issuerUrl: string, send: typeof fetch) {
  const cookies = new Map<string, string>()
  return async (path: string, init: RequestInit = {}): Promise<Response> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { accept: 'application/json', ...init.headers, cookie }
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const url = new URL(path, issuerUrl)
    const response = await send(url, { ...init, headers, signal, redirect: 'manual' }).catch((cause) => {
      throw errorWithoutResponse(cause)
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=;]+)=([^;]*)/.exec(line) ?? []
      if (name !== undefined && value !== undefined) cookies.set(name, value)
    }
    return response
  }
}

type Agent = ReturnType<typeof createAgent>

async function refused(response: Response): Promise<ClearbatchError> {
  const body: unknown = await response.json().catch(() => null)
  return errorOfResponse(response.status, body, response.headers.get('retry-after'))
}

async function post<Answer>(agent: Agent, path: string, body: URLSearchParams | object): Promise<Answer> {
  const isForm = body instanceof URLSearchParams
  const response = await agent(path, {
    method: 'POST',
    headers: isForm ? {} : { 'content-type': 'application/json' },
    body: isForm ? body : JSON.stringify(body),
  })
  if (!response.ok) throw await refused(response)
  return (await response.json()) as Answer
}

/** URL to which a response redirects. */
async function redirection(response: Response, issuerUrl: string): Promise<URL> {
  const location = response.headers.get('location')
  if (location === null) throw await refused(response)
  return new URL(location, issuerUrl)
}

const base64url = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replace(/[+/]/g, (sign) => (sign === '+' ? '-' : '_'))
    .replace(/=+$/, '')
const random = (): string => base64url(crypto.getRandomValues(new Uint8Array(32)))

const sha256 = async (text: string): Promise<Uint8Array> =>
  new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))

/** Signs the provider's text in an authorization that begins at `path`; returns the redirect URL. */
async function approve(agent: Agent, path: string, { issuerUrl, wallet }: SignInOptions): Promise<URL> {
  const interaction = await redirection(await agent(path), issuerUrl)
  const { message } = await post<{ message: string }>(agent, `${interaction.pathname}/message`, {
    address: wallet.address,
  })
  const signature = await wallet.signMessage(message)
  const { redirect_to } = await post<{ redirect_to: string }>(agent, `${interaction.pathname}/signature`, {
    message,
    signature,
  })
  return redirection(await agent(redirect_to), issuerUrl)
}

/**
 * Completes the login page at `address` in place of a browser user; returns the redirect URL, which contains the code.
 */
export const approveAddress = (address: string, options: SignInOptions): Promise<URL> =>
  approve(createAgent(options.issuerUrl, options.fetch ?? fetch), address, options)

async function authorize(agent: Agent, options: SignInOptions, verifier: string): Promise<string> {
  const state = random()
  const query = new URLSearchParams({
    client_id: CLIENT_ID,
    redirect_uri: REDIRECT_URI,
    response_type: 'code',
    scope: 'openid',
    state,
    code_challenge: base64url(await sha256(verifier)),
    code_challenge_method: 'S256',
  })
  const { searchParams } = await approve(agent, `/auth?${query}`, options)
  const code = searchParams.get('code')
  if (code === null || searchParams.get('state') !== state)
    throw errorWithoutResponse(
      new Error(`the provider refused the sign-in: ${searchParams.get('error') ?? 'no code'}`),
    )
  return code
}

/**
 * Signs in. Throws `ClearbatchError`. A contract wallet passes its `address` and a `signMessage` that its
 * contract accepts.
 */
export async function signIn(options: SignInOptions): Promise<SignedIn> {
  const agent = createAgent(options.issuerUrl, options.fetch ?? fetch)
  const verifier = random()
  const code = await authorize(agent, options, verifier)
  const { access_token, expires_in } = await post<{ access_token: string; expires_in: number }>(
    agent,
    '/token',
    new URLSearchParams({
      ...{ grant_type: 'authorization_code', client_id: CLIENT_ID, redirect_uri: REDIRECT_URI },
      ...{ code, code_verifier: verifier },
    }),
  )
  return { accessToken: access_token, expiresAt: Date.now() + expires_in * 1000 }
}
