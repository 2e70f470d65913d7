/** The identity provider of the local stack: OpenID Connect by `oidc-provider`, with a wallet in place of a password. */
import type { JWK } from 'jose'
import { type Configuration, type KoaContextWithOIDC, Provider } from 'oidc-provider'
import { AUDIENCE, CLIENT_ID, COMMAND_CLIENT_ID, PROGRAM_REDIRECT, WALLET_CLAIM } from './terms.ts'

export interface IssuerKeys {
  /** Signs the tokens: a private key with `kid` and `alg`. */
  readonly signing: JWK
  /** Sign the cookies. */
  readonly cookies: readonly string[]
}

export interface ProviderUrls {
  readonly issuerUrl: string
  /** Where the exchange serves its page, which signs in like a program. */
  readonly pageUrl: string
}

const TOKEN_LIFE_S = 3_600

/** A JWT for the api: every token has its audience and the claim of the wallet. */
const resourceIndicators = {
  enabled: true,
  defaultResource: () => AUDIENCE,
  useGrantedResource: () => true,
  getResourceServerInfo: () => ({
    scope: '',
    audience: AUDIENCE,
    accessTokenFormat: 'jwt' as const,
    accessTokenTTL: TOKEN_LIFE_S,
    jwt: { sign: { alg: 'ES256' as const } },
  }),
}

/** Every client is the exchange's own, so the user is not asked to consent to it. */
async function grantOf(ctx: KoaContextWithOIDC) {
  const { client, session, provider } = ctx.oidc
  if (client === undefined || session?.accountId === undefined) return undefined
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
  grant.addOIDCScope('openid')
  await grant.save()
  return grant
}

const configuration = ({ issuerUrl, pageUrl }: ProviderUrls, keys: IssuerKeys): Configuration => ({
  clients: [
    {
      client_id: CLIENT_ID,
      client_name: 'Clearbatch',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code'],
      response_types: ['code'],
      redirect_uris: [`${issuerUrl}/signed-in`, `${pageUrl}/signed-in`, PROGRAM_REDIRECT],
    },
    {
      client_id: COMMAND_CLIENT_ID,
      client_name: 'Clearbatch command',
      // The redirection of a native program may have any port.
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code'],
      response_types: ['code'],
      redirect_uris: [PROGRAM_REDIRECT],
    },
  ],
  jwks: { keys: [keys.signing as never] },
  cookies: { keys: [...keys.cookies] },
  pkce: { required: () => true },
  scopes: ['openid'],
  claims: { openid: ['sub', WALLET_CLAIM] },
  features: { devInteractions: { enabled: false }, resourceIndicators },
  enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  clientBasedCORS: () => true,
  findAccount: (_ctx, address) => ({
    accountId: address,
    claims: async () => ({ sub: address, [WALLET_CLAIM]: address }),
  }),
  extraTokenClaims: (_ctx, token) => ('accountId' in token ? { [WALLET_CLAIM]: token.accountId } : undefined),
  loadExistingGrant: grantOf,
  interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
  ttl: {
    ...{ AccessToken: TOKEN_LIFE_S, AuthorizationCode: 60, IdToken: TOKEN_LIFE_S, Interaction: 600 },
    ...{ Session: 86_400, Grant: 86_400 },
  },
})

export const createProvider = (urls: ProviderUrls, keys: IssuerKeys): Provider =>
  new Provider(urls.issuerUrl, configuration(urls, keys))
