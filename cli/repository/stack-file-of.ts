/** stack.json of the running stack that a command administers. */
import { resolve } from 'node:path'
import { readConfig } from '../config.ts'
import type { Context } from '../context.ts'
import { DEFAULT_STACK } from '../place.ts'

export const stackFileOf = ({ flags, env }: Context): string =>
  resolve(flags.stack ?? (env.CLEARBATCH_STACK || readConfig(env).profiles.local?.stack || DEFAULT_STACK))
