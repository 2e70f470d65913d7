/** Commands on credentials, and on what an account has. */
import { decimal, oneOf, text, toggle } from '../service/command-line.ts'
import { type Command, command } from './command.ts'
import { CONFIRM, MARKET, NEW_KEY, RANGE, TRANSACTION_TYPES } from './flags.ts'

export const AUTH: readonly Command[] = [
  command('auth login', {
    help: 'Sign in and store a profile: the local stack by its file, elsewhere in a browser or by --api-key-file or --token-file',
    flags: {
      scope: oneOf(['trade', 'read'], 'what may be done (default trade)'),
      client: text('<id>', 'client id at the identity provider (default clearbatch-command)'),
    },
    kind: 'tool',
    example: 'clearbatch auth login --profile testnet --url https://api.example.org --api-key-file key.txt',
    load: async () => (await import('./commands/auth.ts')).login,
  }),
  command('auth whoami', {
    help: 'Show the account, its credential and its limits',
    kind: 'read',
    mcp: true,
    example: 'clearbatch auth whoami',
    load: async () => (await import('./commands/auth.ts')).whoami,
  }),
  command('auth keys create', {
    help: 'Create the API key named default after signing in with the wallet or with an access token; replaces the current key of that name',
    flags: NEW_KEY,
    kind: 'account',
    example: 'clearbatch auth keys create --allow 192.0.2.0/24',
    load: async () => (await import('./commands/auth.ts')).createKey,
  }),
  command('auth keys rotate', {
    help: 'Replace the API key named default, with a current key',
    flags: NEW_KEY,
    kind: 'account',
    example: 'clearbatch auth keys rotate',
    load: async () => (await import('./commands/auth.ts')).rotateKey,
  }),
  command('auth api-keys list', {
    help: 'List the API keys of the account',
    kind: 'read',
    example: 'clearbatch auth api-keys list',
    load: async () => (await import('./commands/auth.ts')).apiKeys,
  }),
  command('auth api-keys create', {
    help: 'Create a further API key; the other keys keep working',
    positionals: '<name>',
    flags: {
      scope: NEW_KEY.scope,
      allow: NEW_KEY.allow,
      'new-api-key-file': text('<file>', 'new file in which the key is stored'),
    },
    kind: 'account',
    example: 'clearbatch auth api-keys create dashboard --scope read --new-api-key-file dashboard.key',
    load: async () => (await import('./commands/auth.ts')).createNamedKey,
  }),
  command('auth api-keys revoke', {
    help: 'Revoke an API key of the account, at once',
    positionals: '<name>',
    kind: 'account',
    example: 'clearbatch auth api-keys revoke dashboard',
    load: async () => (await import('./commands/auth.ts')).revokeApiKey,
  }),
  command('auth keys list', {
    help: 'List the session keys',
    flags: { status: oneOf(['ACTIVE', 'EXPIRED', 'REVOKED'], 'only keys with this status') },
    kind: 'read',
    example: 'clearbatch auth keys list --status ACTIVE',
    load: async () => (await import('./commands/auth.ts')).sessionKeys,
  }),
  command('auth keys register', {
    help: 'Register a session key and wait until the chain has it',
    positionals: '[address]',
    flags: { 'new-key-file': text('<file>', 'creates a key and stores its private key in this file') },
    kind: 'account',
    example: 'clearbatch auth keys register --new-key-file session.key',
    load: async () => (await import('./commands/auth.ts')).registerSessionKey,
  }),
  command('auth keys revoke', {
    help: 'Revoke a session key and wait until the chain has revoked it',
    positionals: '<address>',
    kind: 'account',
    example: 'clearbatch auth keys revoke 0x...',
    load: async () => (await import('./commands/auth.ts')).revokeSessionKey,
  }),
]

const ACCOUNT_READS: readonly Command[] = [
  command('account balance', {
    help: 'Show the balance',
    kind: 'read',
    mcp: true,
    example: 'clearbatch account balance --json',
    load: async () => (await import('./commands/account.ts')).balance,
  }),
  command('account positions', {
    help: 'List the positions with their margin and liquidation price',
    kind: 'read',
    mcp: true,
    example: 'clearbatch account positions',
    load: async () => (await import('./commands/account.ts')).positions,
  }),
  command('account pnl', {
    help: 'List the realized profits by interval, newest first',
    flags: { ...RANGE, interval: oneOf(['1h', '1d'], 'length of an interval (default 1d)') },
    kind: 'read',
    mcp: true,
    example: 'clearbatch account pnl --interval 1h --limit 24',
    load: async () => (await import('./commands/account.ts')).pnl,
  }),
  command('account equity', {
    help: 'List the equity by interval with what changed it, newest first',
    flags: {
      ...RANGE,
      interval: oneOf(['1h', '1d'], 'length of an interval (default 1d)'),
      market: text('<symbol>', 'only what this market contributes'),
    },
    kind: 'read',
    mcp: true,
    example: 'clearbatch account equity --interval 1h --limit 24',
    load: async () => (await import('./commands/account.ts')).equity,
  }),
  command('account fills', {
    help: 'List the fills of all orders, newest first',
    flags: {
      ...RANGE,
      csv: toggle('print all of them as CSV'),
      market: text('<symbol>', 'only of this market'),
    },
    kind: 'read',
    mcp: true,
    example: 'clearbatch account fills --market BTC-PERP --limit 20',
    load: async () => (await import('./commands/account.ts')).fills,
  }),
  command('account transactions', {
    help: "List what changed the account's collateral, newest first",
    flags: {
      ...RANGE,
      csv: toggle('print all of them as CSV'),
      type: oneOf(TRANSACTION_TYPES, 'only of this type'),
    },
    kind: 'read',
    mcp: true,
    example: 'clearbatch account transactions --csv > transactions.csv',
    load: async () => (await import('./commands/account.ts')).transactions,
  }),
  command('account withdrawals', {
    help: 'List the withdrawals with their status',
    kind: 'read',
    mcp: true,
    example: 'clearbatch account withdrawals',
    load: async () => (await import('./commands/account.ts')).withdrawals,
  }),
  command('account adjustments', {
    help: 'List the changes of margin and leverage with their status',
    kind: 'read',
    mcp: true,
    example: 'clearbatch account adjustments',
    load: async () => (await import('./commands/account.ts')).adjustments,
  }),
]

const ACCOUNT_ACTIONS: readonly Command[] = [
  command('account faucet', {
    help: 'Request test collateral and gas, on chains that have a faucet',
    kind: 'account',
    example: 'clearbatch account faucet',
    load: async () => (await import('./commands/account.ts')).faucet,
  }),
  command('account deposit', {
    help: 'Deposit USDM from the wallet, in one transaction where the token has a permit',
    positionals: '<amount>',
    flags: CONFIRM,
    kind: 'account',
    example: 'clearbatch account deposit 100',
    load: async () => (await import('./commands/account.ts')).deposit,
  }),
  command('account withdraw', {
    help: 'Request a withdrawal: the amount leaves the free balance and can be paid after a delay',
    positionals: '<amount>',
    flags: CONFIRM,
    kind: 'account',
    example: 'clearbatch account withdraw 100',
    load: async () => (await import('./commands/account.ts')).withdraw,
  }),
  command('account withdraw-complete', {
    help: 'Have all that is payable paid to the wallet',
    kind: 'account',
    example: 'clearbatch account withdraw-complete',
    load: async () => (await import('./commands/account.ts')).completeWithdrawal,
  }),
  command('account margin', {
    help: 'Add margin to a position, or remove it',
    positionals: '<change>',
    flags: { ...MARKET, ...CONFIRM, 'up-to': toggle('remove as much as is possible, at most the amount') },
    kind: 'account',
    example: 'clearbatch account margin --market BTC-PERP -- -50',
    load: async () => (await import('./commands/account.ts')).margin,
  }),
  command('account leverage', {
    help: 'Change the leverage of a position; cancels its open orders first',
    positionals: '<leverage>',
    flags: { ...MARKET, ...CONFIRM, 'max-in': decimal('the most that may be debited from the free balance') },
    kind: 'account',
    example: 'clearbatch account leverage 5 --market BTC-PERP',
    load: async () => (await import('./commands/account.ts')).leverage,
  }),
]

export const ACCOUNT: readonly Command[] = [...ACCOUNT_READS, ...ACCOUNT_ACTIONS]
