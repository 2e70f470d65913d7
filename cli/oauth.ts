/** Authorization code with PKCE: the person signs in in a browser, which is sent back to a port of this machine. */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CommandError, EXIT } from './failure.ts'

export interface AuthorizeOptions {
  readonly issuerUrl: string
  readonly clientId: string
  readonly show: (address: string) => void
  readonly stopping: AbortSignal
  /** Whether to open the address, beside showing it. */
  readonly opens: boolean
}

interface Metadata {
  readonly issuer: string
  readonly authorization_endpoint: string
  readonly token_endpoint: string
}

const TIMEOUT_MS = 10_000
/** For the person to sign in. */
const PATIENCE_MS = 300_000

async function metadataOf(issuerUrl: string): Promise<Metadata> {
  const url = `${issuerUrl.replace(/\/$/, '')}/.well-known/openid-configuration`
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (!response.ok) throw new Error(`HTTP ${response.status}`)
    return (await response.json()) as Metadata
  } catch (error) {
    throw new CommandError(
      `${url} cannot be read (${(error as Error).message}): --issuer-url must be the address of an OpenID provider`,
      EXIT.unavailable,
    )
  }
}

export async function authorizeInBrowser(
  options: AuthorizeOptions,
): Promise<{ readonly accessToken: string }> {
  const metadata = await metadataOf(options.issuerUrl)
  const verifier = randomBytes(32).toString('base64url')
  const state = randomBytes(16).toString('base64url')
  const { redirectUri, code } = await listen(state, options)
  const address = new URL(metadata.authorization_endpoint)
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  for (const [name, value] of [
    ['response_type', 'code'],
    ['client_id', options.clientId],
    ['redirect_uri', redirectUri],
    ['scope', 'openid'],
    ['state', state],
    ['code_challenge', challenge],
    ['code_challenge_method', 'S256'],
  ] as const)
    address.searchParams.set(name, value)
  options.show(String(address))
  if (options.opens) openBrowser(String(address))
  return exchange(metadata, {
    grant_type: 'authorization_code',
    client_id: options.clientId,
    redirect_uri: redirectUri,
    code: await code,
    code_verifier: verifier,
  })
}

async function exchange({ token_endpoint }: Metadata, form: Readonly<Record<string, string>>) {
  const response = await fetch(token_endpoint, {
    method: 'POST',
    body: new URLSearchParams(form),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  })
  const body = (await response.json().catch(() => ({}))) as { access_token?: string; error?: string }
  if (response.ok && typeof body.access_token === 'string') return { accessToken: body.access_token }
  throw new CommandError(
    `the identity provider refused the code: ${body.error ?? `HTTP ${response.status}`}. Sign in again`,
    EXIT.unauthorized,
  )
}

/** Waits for one redirection with the right state. `code` is a promise inside of an object, so that the caller can await the port alone. */
async function listen(
  state: string,
  { stopping }: AuthorizeOptions,
): Promise<{ readonly redirectUri: string; readonly code: Promise<string> }> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const code = new Promise<string>((resolve, reject) => {
    const end = (error: CommandError) => {
      clearTimeout(timer)
      server.close()
      server.closeAllConnections()
      reject(error)
    }
    const timer = setTimeout(
      () => end(new CommandError('no sign-in within 5 minutes: run the command again', EXIT.unauthorized)),
      PATIENCE_MS,
    )
    stopping.addEventListener('abort', () => end(new CommandError('interrupted: not signed in')), {
      once: true,
    })
    server.on('request', (request, response) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://127.0.0.1')
      const isOurs = pathname === '/callback' && searchParams.get('state') === state
      response.writeHead(isOurs ? 200 : 404, { 'content-type': 'text/plain', connection: 'close' })
      response.end(isOurs ? 'You can close this window and return to the terminal.\n' : 'not found\n')
      if (!isOurs) return
      clearTimeout(timer)
      server.close()
      const received = searchParams.get('code')
      if (received !== null) resolve(received)
      else
        reject(
          new CommandError(
            `the sign-in was refused: ${searchParams.get('error') ?? 'no code'}`,
            EXIT.unauthorized,
          ),
        )
    })
  })
  // It may be rejected before the caller awaits it.
  code.catch(() => {})
  return { redirectUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`, code }
}

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
}

/** Without a browser the person opens the printed address. */
function openBrowser(address: string): void {
  const [program = 'xdg-open', ...args] = OPENERS[process.platform] ?? []
  spawn(program, [...args, address], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref()
}
