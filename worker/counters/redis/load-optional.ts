// Loads packages that only some workers need, and that may not be installed.
import { AppError, errorText } from '../../../shared/errors.ts';

/** Workers without such tokens do not need these packages. */
export async function loadOptional<Loaded>(load: () => Promise<Loaded>): Promise<Loaded> {
  try {
    return await load();
  } catch (error) {
    const [, name] = /Cannot find package '([^']+)'/.exec(errorText(error)) ?? [];
    if (name === undefined) throw error;
    const hint = `install it, or install Ratelane without --omit=optional`;
    throw new AppError('store', `tokens need the package ${name}, which is not there: ${hint}`);
  }
}
