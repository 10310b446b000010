// Text of an agent as Markdown. Loaded when it is first needed.
//
// HTML in the text is text. Links lead to http, https and mailto alone, open elsewhere and tell nothing of
// this page. Images are links, because the page loads nothing from elsewhere.

import ReactMarkdown from "react-markdown";
import gfm from "remark-gfm";
import { CodeText, DiffText } from "../code/code.tsx";
import { shown } from "./text.ts";

const SCHEMES = /^(https?:|mailto:)/i;

export default function Markdown({ text }: { readonly text: string }) {
  return (
    <div className="prose">
      <ReactMarkdown
        remarkPlugins={[gfm]}
        urlTransform={(url) => (SCHEMES.test(url) ? url : "")}
        components={{
          a: ({ href, children }) =>
            href === undefined || href === "" ? (
              <span>{children}</span>
            ) : (
              <a href={href} target="_blank" rel="noopener noreferrer nofollow" title={href}>
                {children}
              </a>
            ),
          code: ({ className, children }) => {
            const [, language] = /^language-(\S+)$/.exec(className ?? "") ?? [];
            return (
              <code>
                {language === undefined || typeof children !== "string" ? (
                  children
                ) : language === "diff" || language === "patch" ? (
                  <DiffText text={children} />
                ) : (
                  <CodeText language={language} text={children} />
                )}
              </code>
            );
          },
          img: ({ src, alt }) => (
            <span>
              [image{alt === undefined || alt === "" ? "" : `: ${alt}`}
              {typeof src === "string" && src !== "" ? ` ${src}` : ""}]
            </span>
          ),
        }}
      >
        {shown(text)}
      </ReactMarkdown>
    </div>
  );
}
