/** Tables of readers without a reader. */
import type { Tables } from '../../../../keeper/engine/ports.ts'

export const NO_TABLES: Tables<unknown> = {
  written: async () => 0,
  begin() {},
  collect: () => ({ run: async () => true }),
  giveBack() {},
  isAwaited: () => false,
}
