/** Errors of the contracts in answers. */

/** The name of an error without its arguments, which may name other accounts. Other texts stay as they are. */
export const errorName = (error: string): string => /^(\w+)\(/.exec(error)?.[1] ?? error
