/** The steps of a sign-in that a browser or a program completes: the page, the text for a wallet, its signature. */
import type Provider from 'oidc-provider'
import { homePage, type Page, signInPage } from './pages.ts'
import { SignInError, type WalletSignIn } from './wallet-sign-in.ts'

const MAX_BODY = 16 * 1024
const STEP = /^\/interaction\/([\w-]+)(\/message|\/signature)?$/

type Context = Parameters<Parameters<Provider['use']>[0]>[0]
type Body = Readonly<Record<string, unknown>>

async function readBody(ctx: Context): Promise<Body> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of ctx.req as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > MAX_BODY) throw new SignInError('BODY_TOO_LARGE', `the body exceeds ${MAX_BODY} bytes`)
    chunks.push(chunk)
  }
  try {
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString())
    if (typeof body === 'object' && body !== null) return body as Body
  } catch {
    // Treated below like a body that is not an object.
  }
  throw new SignInError('INVALID_JSON', 'the body must be a JSON object')
}

function textOf(body: Body, field: string): string {
  const value = body[field]
  if (typeof value === 'string') return value
  throw new SignInError('INVALID_FIELD', `${field} must be a string`)
}

function show(ctx: Context, { html, policy }: Page): void {
  ctx.set('content-security-policy', policy)
  ctx.set('cache-control', 'no-store')
  ctx.type = 'html'
  ctx.body = html
}

/** The interaction of the request's cookie, which must be that of the path. */
async function requireInteraction(provider: Provider, ctx: Context, uid: string): Promise<void> {
  const found = await provider.interactionDetails(ctx.req, ctx.res).catch(() => null)
  if (found?.uid !== uid)
    throw new SignInError('INTERACTION_UNKNOWN', 'this sign-in has ended; start another one')
}

/** Adds the routes in front of the provider's own. */
export function addInteraction(provider: Provider, wallets: WalletSignIn): void {
  async function step(ctx: Context, uid: string, name: string | undefined): Promise<void> {
    await requireInteraction(provider, ctx, uid)
    if (name === undefined) return show(ctx, signInPage())
    const body = await readBody(ctx)
    if (name === '/message') {
      ctx.body = { message: wallets.textFor(uid, textOf(body, 'address')) }
      return
    }
    const accountId = await wallets.verify(uid, textOf(body, 'message'), textOf(body, 'signature'))
    // The provider demands consent for native clients at every sign-in; the wallet's signature gives it.
    const result = { login: { accountId, remember: false }, consent: {} }
    ctx.body = { redirect_to: await provider.interactionResult(ctx.req, ctx.res, result) }
  }
  provider.use(async (ctx, next) => {
    const { method, path } = ctx
    if (method === 'GET' && (path === '/' || path === '/signed-in')) return show(ctx, homePage())
    const [, uid, name] = STEP.exec(path) ?? []
    if (uid === undefined || method !== (name === undefined ? 'GET' : 'POST')) return next()
    try {
      await step(ctx, uid, name)
    } catch (error) {
      if (!(error instanceof SignInError)) throw error
      ctx.status = 400
      ctx.body = { message: error.message, details: { code: error.code, retryable: false } }
    }
  })
}
