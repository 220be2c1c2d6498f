/** The language of the page at hand in every part. */
import { type Lang, figure } from "../format";
import { type Fill, type Text, text } from "../i18n";
import { prefs } from "../live/prefs";
import { useStore } from "../live/store";

export interface Say {
  lang: Lang;
  (name: Text, fill?: Fill): string;
}

export function useSay(): Say {
  const { lang } = useStore(prefs);
  return Object.assign((name: Text, fill?: Fill) => text(lang, name, fill), { lang });
}

export const number = (say: Say, value: number | bigint): string => figure(value, say.lang);
