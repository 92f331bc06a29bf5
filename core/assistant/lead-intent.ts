import { visibleCharacters } from "../platform/characters.ts";
import { folded } from "./topics.ts";

/** What a visitor wants who is offered the lead form (contract 5, "Tools"). */
export type Intent = "demo" | "quote" | "purchase" | "contact";

/** Patterns read lower-case words without accents and marks; a line a language, in the order en, de, fr, es, it, nl, pt. */
const any = (...lines: string[]): RegExp => new RegExp(`\\b(?:${lines.join("|")})\\b`);

const WISH = any(
  "want|wanna|would like|d like|need|can (?:i|we|you)|could (?:i|we|you)|may i|please|get|book|request|schedule|arrange|interested|looking for|is there|do you (?:do|offer|have|give|make)|how (?:do|can) (?:i|we)|send|give|make me|show me",
  "mochte\\w*|hatte\\w* gern\\w*|will|wollen|brauche\\w*|benotige\\w*|kann|konn\\w*|bitte|gern\\w*|vereinbaren|anfordern|interess\\w*|wurde\\w*|schick\\w*|macht",
  "voudrais|voudrions|veux|souhait\\w*|aimerais|peux|peut|pouvez|puis|besoin|interess\\w*|s il vous plait|demander|obtenir",
  "quiero|queremos|quisiera\\w*|gustaria|necesit\\w*|puedo|podria\\w*|pueden|por favor|interes\\w*|solicitar|pedir",
  "vorrei|vorremmo|voglio|posso|potrei|potete|potreste|bisogno|interess\\w*|per favore|richiedere|avere",
  "wil|willen|graag|kan|kunnen|nodig|interesse|aanvragen|mag",
  "quero|queremos|queria|gostaria|posso|podia|poderia|preciso|podem|interess\\w*|por favor|solicitar|pedir",
);
const REFUSAL = any(
  "(?:don t|do not|doesn t|never|no longer|stop|without|not) (?:\\S+ ){0,3}(?:contact|contacted|call|calls|calling|demo|quote|buy|order|talk|reach|email|emailing)",
  "(?:kein\\w*|nicht|ohne) (?:\\S+ ){0,2}(?:angebot|demo|kontakt|anruf|ruckruf|kaufen|kontaktier\\w*|anrufen|bestellen)",
  "ne (?:\\S+ ){0,3}pas|sans (?:devis|demo)",
  "no (?:quiero|deseo|necesito|me llam\\w*|me contact\\w*)",
  "non (?:voglio|desidero|chiam\\w*|contatt\\w*|mi serve)",
  "(?:geen|niet) (?:\\S+ ){0,2}(?:offerte|demo|contact|bellen|kopen)",
  "nao (?:quero|desejo|preciso|me lig\\w*|me contat\\w*)",
);

const DEMO =
  /\b(?:demos?|demonstration|vorfuhrung|produktvorfuhrung|demostracion|dimostrazione|demonstratie|demonstracao|probestunde)\b(?! (?:video|account|version|site|store|mode|page|data|file|konto|modus|seite|compte|cuenta|modo))/;
const QUOTE = any(
  "quotes?|quotation|(?:an?|free|cost|price|written) estimate|price proposal|tailored offer|custom (?:offer|pricing|price)",
  "(?:ein|eine|einen|mir|uns|unverbindlich\\w*|individuell\\w*|konkret\\w*) (?:\\S+ ){0,3}angebot|angebot (?:machen|erstellen|anfordern|einholen|schicken|zusenden|bekommen|erhalten)|kostenvoranschlag|preisanfrage",
  "devis",
  "presupuesto|cotizacion",
  "preventivo",
  "offerte|prijsopgave",
  "orcamento|cotacao",
);
const CITATION =
  /\b(?:quotes? (?:by|from|of|about|on)|(?:famous|favou?rite|inspirational|best|this|that|the) quotes?)\b/;
/** A price for the visitor's own case. */
const OWN_PRICE = new RegExp(
  [
    "\\b(?:how much|what|price|pricing|costs?|rates?|charge)\\b.*\\b(?:for|with) (?:(?:my|our) (?:\\S+ )?(?:company|team|business|organi[sz]ation|office|case|project|needs|wedding|event|party|house|home|flat|website|shop|store|restaurant|requirements|agency|school|startup|firm|group|class|family)|(?:a|an) (?:team|company|group|wedding|party|event|business|organi[sz]ation) of|\\d+ (?:people|persons|users|seats|employees|guests|licen[cs]es|members))\\b",
    "\\bwas (?:kostet|kosten|wurde|wurden)\\b.*\\bfur (?:(?:meine|unsere|mein|unser|unseren|meinen) (?:\\S+ )?(?:firma|unternehmen|team|betrieb|projekt|hochzeit|feier|verein|haus|wohnung|website|laden|buro|gruppe)|\\d+ (?:personen|leute|nutzer|mitarbeiter\\w*|gaste))\\b",
    "\\bcombien\\b.*\\bpour (?:(?:mon|ma|notre|nos|mes) (?:entreprise|equipe|projet|mariage|societe|evenement|association|maison|bureau|groupe)|\\d+ (?:personnes|utilisateurs|invites|employes))\\b",
    "\\bcuanto\\b.*\\bpara (?:(?:mi|nuestra|nuestro) (?:empresa|equipo|proyecto|boda|negocio|evento|casa|grupo)|\\d+ (?:personas|usuarios|invitados|empleados))\\b",
    "\\bquanto\\b.*\\bper (?:(?:la mia|il mio|la nostra|il nostro) (?:azienda|squadra|team|progetto|matrimonio|evento|casa|gruppo)|\\d+ (?:persone|utenti|invitati|dipendenti))\\b",
    "\\b(?:wat kost|hoeveel kost)\\b.*\\bvoor (?:(?:mijn|ons|onze) (?:bedrijf|team|project|bruiloft|evenement|huis|groep)|\\d+ (?:personen|gebruikers|gasten|medewerkers))\\b",
    "\\bquanto\\b.*\\bpara (?:(?:a minha|o meu|a nossa|o nosso|minha|meu|nossa|nosso) (?:empresa|equipa|equipe|time|projeto|casamento|negocio|evento|casa|grupo)|\\d+ (?:pessoas|usuarios|utilizadores|convidados|funcionarios))\\b",
  ].join("|"),
);
const PURCHASE = any(
  "(?:want|would like|d like|ready|wish|going|how (?:do|can|could) (?:i|we)|where (?:do|can|could) (?:i|we)|(?:can|could|may) (?:i|we)|interested in) (?:\\S+ ){0,3}(?:buy|buying|purchase|purchasing|order|ordering|subscribe|sign up|get started)|become a (?:customer|client|member)",
  "(?:mochte\\w*|will|wollen|wurde\\w*|kann ich|konnen wir|wo kann|wie kann|wo konnen) (?:\\S+ ){0,6}(?:kaufen|bestellen|erwerben|abonnieren|beauftragen)",
  "(?:voudrais|voudrions|veux|souhait\\w*|aimerais|puis je|peut on|comment|ou) (?:\\S+ ){0,4}(?:acheter|commander|m abonner|souscrire)",
  "(?:quiero|queremos|quisiera\\w*|gustaria|puedo|podemos|como|donde) (?:\\S+ ){0,3}(?:comprar\\w*|contratar|encargar|suscribirme)",
  "(?:vorrei|vorremmo|voglio|posso|possiamo|come|dove) (?:\\S+ ){0,3}(?:comprare|acquistare|ordinare|abbonarmi)",
  "(?:wil|willen|graag|kan ik|kunnen we|hoe|waar) (?:\\S+ ){0,5}(?:kopen|bestellen|aanschaffen)",
  "(?:quero|queremos|queria|gostaria|posso|podemos|como|onde) (?:\\S+ ){0,3}(?:comprar|encomendar|contratar|assinar)",
);
/** An order that exists already. */
const BOUGHT =
  /\b(?:cancel\w*|return\w*|refund\w*|chang\w*|track\w*|status|already|bought|ordered|invoice|in order to|stornier\w*|zuruckgeb\w*|widerruf\w*|annuler|rembours\w*|devolver|anular|cancelar|restituire|annullare|annuleren|retour\w*|devol\w*)\b/;

/** A visitor who reaches for something, and the people of a business: reaching anything else is no wish for contact. */
const REACHING =
  "(?:how (?:do|can|could|should) (?:i|we) (?:best )?|(?:want|like|need) to |where can (?:i|we) )(?:reach|get hold of)";
const BUSINESS = [
  "you",
  "someone|somebody|anyone|an? (?:human|person|real)",
  "(?:your|the) (?:\\S+ ){0,2}(?:team|staff|people|office|owner|shop|store|studio|company|support|sales|service|desk|helpdesk|department|manager|agents?|advis[eo]rs?)",
  "support|sales|customer (?:service|support|care)",
];

const CONTACT = any(
  "(?:can|could|would|will|should|please|have) (?:you |someone |somebody |anyone |your team |sales |a person |a human )?(?:please )?(?:contact|call|email|phone|ring|reach|get back to) (?:me|us)|(?:call|contact|email|phone|ring|text|write) (?:me|us)(?: back)?|call ?back|get in touch|getting in touch|(?:talk|speak|chat) (?:to|with) (?:someone|somebody|anyone|an? (?:human|person|real|sales\\w*|rep\\w*|expert|consultant|advisor|adviser|specialist|member|agent)|sales|your|you|the (?:team|owner|sales\\w*)|support)|how (?:do|can|could|should) (?:i|we) (?:best )?contact|(?:want|like|need) to contact|contact (?:sales|you|your|someone|somebody)|where can (?:i|we) contact|leave (?:you )?(?:my|our) (?:details|number|e ?mail|contact)|(?:book|schedule|arrange|set up) an? (?:\\S+ )?(?:call|meeting|consultation)|(?:work with|hire) (?:you|your team)|hear from (?:you|sales)|^contact(?: please)?$",
  `${REACHING} (?:out|${BUSINESS.join("|")})`,
  "kontakt (?:\\S+ ){0,3}aufnehmen|kontaktaufnahme|wie (?:kann|konnen|erreiche\\w*|kontaktiere\\w*) (?:\\S+ ){0,4}(?:kontaktieren|sie|euch|ihn|jemanden|kundenservice|kundendienst|support|team)|ruckruf\\w*|zuruckrufen|ruf\\w* (?:sie )?(?:mich|uns)|mich (?:\\S+ )?(?:anrufen|kontaktieren)|mit (?:jemand\\w*|ihnen|euch|einem|einer) (?:\\S+ ){0,3}(?:sprechen|reden)|meld\\w* (?:sie sich|euch|dich)|beratungs(?:gesprach|termin)",
  "(?:vous|nous|me|quelqu un) (?:contacter|rappeler|joindre|appeler)|contactez moi|rappelez moi|appelez moi|parler (?:a|avec) (?:quelqu|un|une|votre|vous)|prendre contact|entrer en contact|etre (?:rappele|contacte)\\w*|comment (?:\\S+ )?(?:contacter|joindre)",
  "contactar\\w*|ponerme en contacto|ponerse en contacto|llamenme|llamarme|hablar con (?:alguien|un|una|ustedes|vosotros|el|la)|que me (?:llamen|contacten|llameis)",
  "contattar\\w*|contattatemi|mettermi in contatto|parlare con (?:qualcuno|un|una|voi|il)|richiam\\w*|ricontatt\\w*|chiamatemi",
  "contact (?:\\S+ ){0,3}opnemen|contact met|bel (?:me|mij|ons)|terugbellen|teruggebeld|iemand (?:\\S+ ){0,2}spreken|(?:spreken|praten) met|jullie (?:bereiken|contacteren)",
  "contatar\\w*|entrar em conta\\w*|entrem em conta\\w*|falar com (?:alguem|um|uma|voces|o|a)|me lig\\w*|liguem me|ligar me|ser contatad\\w*",
);

const SHORT_QUESTION = 3;
const QUESTION_READ = 2000;

/** What a visitor asks for who should be offered the lead form; undefined for every other question. */
export function intentOf(question: string): Intent | undefined {
  const asked = folded(visibleCharacters(question.slice(0, QUESTION_READ)))
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
  const wishes = WISH.test(asked) || asked.split(" ").length <= SHORT_QUESTION;
  if (REFUSAL.test(asked)) return undefined;
  if (wishes && DEMO.test(asked)) return "demo";
  if ((wishes && QUOTE.test(asked) && !CITATION.test(asked)) || OWN_PRICE.test(asked)) return "quote";
  if (CONTACT.test(asked)) return "contact";
  return PURCHASE.test(asked) && !BOUGHT.test(asked) ? "purchase" : undefined;
}
