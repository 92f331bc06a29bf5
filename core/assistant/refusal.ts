import { visibleCharacters } from "../platform/characters.ts";
import { languageOf } from "./language.ts";
import { phrases } from "./phrases.ts";

/** Something that is never answered; the patterns read text as `plain` makes it. */
interface Matter {
  /** What is asked for. */
  what: RegExp;
  /** The wish to have it; absent where naming it is enough. */
  wish?: RegExp;
  /** Harmless questions in the same words. */
  harmless?: RegExp;
}

/** One pattern of whole words; a line a language: English, German, French, Spanish, Italian, Dutch, Portuguese. */
const any = (...lines: string[]): RegExp => new RegExp(`\\b(?:${lines.join("|")})\\b`);
/** Both in any order, at most five words apart. */
const near = (first: RegExp, second: RegExp): RegExp =>
  new RegExp(`${first.source}(?: \\S+){0,5} ${second.source}|${second.source}(?: \\S+){0,5} ${first.source}`);
const either = (...patterns: RegExp[]): RegExp => new RegExp(patterns.map(({ source }) => source).join("|"));

const DEMAND = any(
  "show|give|gimme|tell|send|share|reveal|disclose|print|list|dump|output|display|expose|leak|provide|repeat|recite|export|hand over|paste|copy|quote|read out|summari[sz]e|read me",
  "zeig\\w*|gib|gebt|geben|sag|sage|sagen|nenn\\w*|schick\\w*|verrat\\w*|auflisten|liste|ausgeben|wiederhol\\w*|zusammenfass\\w*|fass\\w*",
  "donne\\w*|dis|dites|montre\\w*|envoie|envoye\\w*|revele\\w*|affiche\\w*|partage\\w*|repete\\w*|resume\\w*",
  "dime|digame|dame|deme|muestr\\w*|ensename|envi[ae]\\w*|comparte|repite|resum\\w*",
  "dimmi|dammi|mostra\\w*|invia\\w*|rivela\\w*|elenca\\w*|ripeti|riassumi|stampa",
  "geef|toon|stuur|zeg|vertel|onthul|deel|herhaal|laat",
  "diga|me da|da me|de me|mostr\\w*|envi[ea]\\w*|revele|liste|repita|me pass[ae]|imprima",
);
const WISH = either(
  DEMAND,
  any(
    "what|whats|which|who|whose|need|want|know|get|see|have|find|guess|crack|hack|steal|access",
    "was|wie lautet|wie lauten|wie ist|wie heisst|welche\\w*|wer|wessen|brauche|will|mochte|kenn\\w*|wissen",
    "quel\\w*|qui|besoin|veux|voudrais|voir|connaitre|savoir",
    "cual\\w*|que|quien\\w*|necesito|quiero|ver|saber",
    "qual\\w*|chi|bisogno|voglio|vorrei|vedere|sapere",
    "wat|welk\\w*|nodig|wil|weten|zien",
    "quais|quem|preciso|quero|gostaria",
  ),
);

const SECRETS = any(
  "pass ?words?|passcodes?|passphrases?|pin codes?|(?:secret|private|ssh|signing|encryption|master) keys?|api ?(?:keys?|secrets?|tokens?)|(?:access|bearer|auth|session|admin) tokens?|client secrets?|credentials?|login (?:data|details)|connection strings?|database urls?|env files?|environment variables?|backup codes?|card numbers",
  "passwort\\w*|kennwort\\w*|zugangsdaten|anmeldedaten|zugangscodes?|geheimschlussel|api schlussel|umgebungsvariablen",
  "mots? de passe|identifiants?(?: de connexion)?|cles? (?:api|d api|secretes?|privees?)|jetons? d acces|variables d environnement",
  "contrasenas?|claves? (?:api|de api|secretas?|privadas?|de acceso)|credenciales|datos de acceso|variables de entorno",
  "chiav[ei] (?:api|segret[ae]|privat[ae])|credenziali|dati di accesso|variabili d ambiente",
  "wachtwoord\\w*|inloggegevens|api sleutels?|geheime sleutels?|omgevingsvariabelen",
  "senhas?|palavras? passe|chaves? (?:api|de api|da api|secretas?|privadas?)|credenciais|dados de acesso|variaveis de ambiente",
);
const SOMEBODY = any(
  "admin\\w*|root|server|database|production|backend|staff|employees?|customers?|clients?|users?|owners?|ceo|boss",
  "datenbank|kunden|mitarbeiter\\w*|benutzer\\w*|chefs?",
  "utilisateurs?|employes?|base de donnees|serveur",
  "clientes?|usuarios?|empleados?|base de datos|servidor",
  "clienti|utenti|dipendenti",
  "klanten|gebruikers|medewerkers",
  "funcionarios|utilizadores|banco de dados",
);
/** How to use, make, change, lose or keep safe a secret of one's own. */
const KEEPING = any(
  "reset\\w*|forg[eo]t\\w*|lost|chang\\w*|recover\\w*|creat\\w*|generat\\w*|rotat\\w*|protect\\w*|stor\\w*|secur\\w*|manager?s?|polic\\w*|strong|requirements?|hash\\w*|encrypt\\w*|supports?|offers?|integrat\\w*|need an?|require\\w*|do i need|how (?:do|can|to|does)|set up|where (?:do|can) i|wi ?fi|wlan|locked out|expire\\w*|without|protected",
  "zuruck\\w*|vergessen|ander\\w*|erstell\\w*|generier\\w*|wiederherstell\\w*|schutz\\w*|speicher\\w*|verschlussel\\w*|manager|sicher\\w*|wie (?:kann|setze|bekomme)|wo (?:finde|kann)",
  "oublie\\w*|reinitialis\\w*|modifi\\w*|recuper\\w*|gestionnaire\\w*|creer|protege\\w*|stocke\\w*|comment|ou trouver",
  "olvid\\w*|restablec\\w*|cambi\\w*|gestor\\w*|crear|protegen|guardan|como|donde",
  "dimentic\\w*|reimpost\\w*|gestore|creare|proteggete|conservate|come|dove",
  "vergeten|resetten|wijzig\\w*|verander\\w*|herstel\\w*|wachtwoordbeheer\\w*|aanmaken|bewar\\w*|hoe|waar",
  "esquec\\w*|redefin\\w*|alter\\w*|mudar|gerenciador|gestor|criar|protegem|armazenam|onde",
);

const PEOPLE = any(
  "customers?|clients?|users?|members?|patients?|guests?|leads?|subscribers?|employees?|visitors?|attendees",
  "kunden|nutzer|benutzer|mitglieder|patienten|gaste|mitarbeiter\\w*|besucher",
  "utilisateurs?|membres|patients|employes|abonnes|visiteurs",
  "clientes|usuarios|miembros|pacientes|empleados|visitantes",
  "clienti|utenti|membri|pazienti|dipendenti|visitatori",
  "klanten|gebruikers|leden|medewerkers|bezoekers",
  "utilizadores|membros|funcionarios|assinantes",
);
const RECORDS = any(
  "lists?|names?|e ?mails?|address|addresses|phones?|phone numbers?|data|details|records?|contacts?|database|invoices?|payments?|orders?|bookings?|messages",
  "liste|namen|adressen|e mails?|mailadressen|telefonnummern|daten|datenbank|rechnungen|bestellungen",
  "liste|noms?|adresses|e mails|numeros?|donnees|coordonnees|factures|commandes",
  "lista|nombres|direcciones|correos?|telefonos|datos|facturas|pedidos",
  "elenco|nomi|indirizzi|e mail|numeri|dati|fatture|ordini",
  "lijst|namen|mailadressen|telefoonnummers|gegevens|facturen",
  "lista|nomes|enderecos|moradas|e mails|dados|faturas|pedidos",
);
const COMPOUND_RECORDS = any(
  "kundendaten|kundenlisten?|kundenadressen|kundennamen|mitgliederlisten?|patientendaten",
  "klantgegevens|klantenlijst",
);
/** What somebody else did here, or what a person is paid. */
const DOINGS =
  /\bwho (?:else )?(?:has |have )?(?:booked|ordered|bought|registered|signed up|submitted|contacted you)\b.*\b(?:before|recently|yesterday|today|last|this|already|else|me)\b|\bwho else (?:booked|ordered|bought|registered|signed up)\b|\bwhat did (?:the )?(?:other|last|previous|another) \S+ (?:ask|order|buy|book|pay|submit|enter|write)\b|\bhow much did (?:the )?(?:other |last |previous |another )?(?:customers?|clients?|guests?|users?|mr|mrs|ms|dr)\b.*\bpay\b|\bhow much (?:does|do|is) (?:the |your )?(?:ceo|boss|owner|staff|employees?|manager) (?:earn|make|paid)|\b(?:home|private) (?:address|phone|number|mobile)\b.*\b(?:of|owner|ceo|boss|customer|employee|staff|doctor|teacher|his|her|their)\b|\b(?:owner|ceo|boss|customer|employee|doctor|teacher|his|her|their)\b.*\b(?:home|private) (?:address|phone|number|mobile)\b|\bwer hat (?:gestern|heute|zuletzt|noch|sonst)\b.*\b(?:gebucht|bestellt|gekauft|angefragt)\b|\bprivat(?:e|en)? (?:adresse|telefonnummer|nummer|anschrift)\b|\bwas verdient (?:der|die|ihr|euer) (?:chef|chefin|inhaber|mitarbeiter)/;
/** How such data is kept, one's own data, and software that keeps it. */
const CARE = any(
  "handle|protect\\w*|stor\\w*|process\\w*|do you collect|privacy|policy|gdpr|secur\\w*|encrypt\\w*|safe|sell|delet\\w*|eras\\w*|my|own|how many|reviews?|testimonials?|references?|import\\w*|integrat\\w*|manag\\w*|features?|crm|(?:can|could|do|how) (?:i|we)|does it|per user|which data|what data|users? names?",
  "umgeh\\w*|umgang|schutz\\w*|speicher\\w*|verarbeit\\w*|datenschutz|dsgvo|mein\\w*|kundenservice|wie viele|losch\\w*|kann ich",
  "proteg\\w*|trait\\w*|stock\\w*|conserv\\w*|confidentialite|rgpd|mes|ma|mon|service client\\w*|combien|puis je",
  "tratan|protegen|guardan|conservan|privacidad|mis|mi|atencion|cuantos|puedo",
  "tratt\\w*|conserv\\w*|privatezza|miei|mio|mia|quanti|posso",
  "bescherm\\w*|bewar\\w*|verwerk\\w*|mijn|klantenservice|hoeveel|kan ik",
  "tratam|armazenam|privacidade|meus|meu|minha|atendimento|quantos",
);

const INTERNAL = any(
  "internal|confidential|classified|secret|private|proprietary|unpublished|non public|hidden|draft",
  "interne[nrs]?|vertrauliche[nrs]?|geheime[nrs]?|unveroffentlichte[nrs]?|versteckte[nrs]?|private[nrs]?",
  "internes?|confidentiel\\w*|secretes?|secrets|cachee?s?|privee?s?",
  "intern[oa]s?|confidencial\\w*|secret[oa]s?|ocult[oa]s?|privad[oa]s?",
  "intern[oie]|riservat[oaie]|segret[oaie]|nascost[oaie]|privat[oaie]",
  "vertrouwelijke?|geheime|verborgen|prive",
);
const PAPERS = any(
  "documents?|docs|notes?|memos?|runbooks?|handbooks?|wikis?|roadmaps?|strateg(?:y|ies)|price lists?|margins?|information|info|pages?|posts?|files?|reports?|numbers|figures|data|instructions?|urls?|content|materials?|emails?|prompts?|texts?|markers?",
  "dokument\\w*|unterlagen|notizen|handbuch|berichte?|zahlen|daten|informationen|anweisungen|seiten?|inhalte?|preislisten?",
  "documents?|notes|rapports?|chiffres|donnees|informations|consignes|contenus?",
  "documentos?|notas|informes?|datos|informacion|instrucciones|paginas?|contenidos?",
  "documenti|note|rapporti|dati|informazioni|istruzioni|pagine|contenuti",
  "documenten|notities|rapporten|gegevens|informatie|inhoud",
  "relatorios?|dados|informacoes|instrucoes|conteudos?",
);
const ADJECTIVE_FIRST = new RegExp(`${INTERNAL.source} (?:\\S+ )?${PAPERS.source}|${PAPERS.source} ${INTERNAL.source}`);
const INNER_THINGS =
  /\b(?:runbooks?|trade secrets?|company secrets?|business secrets?|profit margins?|server logs?|source code of (?:your|this|the)|betriebsgeheimnis\w*|geschaftsgeheimnis\w*|firmengeheimnis\w*|gewinnmarge\w*|secrets? d affaires|secretos? comercial\w*|segreti aziendali|bedrijfsgeheim\w*|segredos? comercia\w*)\b/;
const BARE_SECRETS =
  /\b(?:secrets|geheimnisse|tes secrets|vos secrets|secretos|segreti|geheimen|segredos)\b|\b(?:a|your|any) secret(?! (?:to|of|behind|ingredients?|menu|recipes?|santa|garden|sauce))\b/;
const KNOWN_SECRETS =
  /\bsecrets? (?:of|to|behind|ingredients?|menu|recipes?|sauce|santa|garden)\b|\bsecrets? (?:de|der|des|del|della|van|do|da)\b/;

/** What the assistant itself is told, and attempts to change that. */
const INSTRUCTIONS =
  /\bsystem ?(?:prompts?|messages?|instructions?)\b|\bsystem(?:nachricht|anweisung)\w*|\b(?:prompt|message|mensaje|instrucciones|istruzioni|messaggio|instrucoes|mensagem) (?:systeme|del? sistema|di sistema|do sistema)\b|\binvite systeme\b|\bsysteemprompt\w*|\b(?:ignore|disregard|forget|override|bypass) (?:\S+ ){0,4}(?:instructions?|rules|prompts?|guidelines|restrictions?|filters?)\b|\b(?:ignorier\w*|vergiss|missachte) (?:\S+ ){0,4}(?:anweisungen|regeln|vorgaben)\b|\b(?:ignore\w*|oublie\w*) (?:\S+ ){0,4}(?:instructions|consignes|regles|instrucoes|regras)\b|\b(?:ignora|olvida|dimentica) (?:\S+ ){0,4}(?:instrucciones|reglas|istruzioni|regole)\b|\b(?:negeer|vergeet) (?:\S+ ){0,4}(?:instructies|regels)\b|\b(?:repeat|print|output|show|copy|reveal) (?:me )?(?:everything|all|the (?:text|words?)|anything) (?:\S+ )?(?:above|before)\b|\byour (?:initial|original|hidden|secret|exact|full|system|internal) (?:instructions?|prompt|rules|guidelines)\b|\b(?:what|which|show|give|reveal|print|repeat|tell|list)\b.*\b(?:your (?:instructions|prompt)|you (?:were|have been) (?:told|instructed))$|\b(?:deine|ihre|eure) (?:genauen |internen )?(?:anweisungen|prompts?)$|\b(?:tes|vos) (?:instructions|consignes)$|\b(?:tus|sus) instrucciones$|\btue istruzioni$|\b(?:jouw|je) instructies$|\b(?:suas|tuas) instrucoes$|\b(?:developer|debug|god|dan|admin) mode\b|\bjailbreak\b|\bwithout (?:any )?(?:restrictions|filters|rules)\b.*\b(?:answer|act|you)\b|\b(?:pretend|act) (?:\S+ ){0,6}(?:no (?:rules|restrictions|limits|filters)|unrestricted)\b/;

const PAID = any(
  "paid|premium|members? only|subscribers? only|paywalled|locked|gated",
  "bezahlte[nrs]?|kostenpflichtige[nrs]?",
  "payante?s?|reserve\\w*",
  "de pago|exclusiv[oa]s?",
  "a pagamento|riservat[oaie]",
  "betaalde",
  "pag[oa]s?",
);
const BODIES = any(
  "content|material|lessons?|chapters?|articles?|sections?|parts?|text|body|modules?",
  "inhalt\\w*|teile?s?|bereichs?|lektion\\w*|kapitels?|textes?|artikels?",
  "contenus?|parties?|lecons?|chapitres?|textes?",
  "contenidos?|partes?|leccion\\w*|capitulos?|seccion\\w*|textos?",
  "contenut[oi]|parti|lezion[ei]|capitol[oi]|sezion[ei]|testo",
  "inhoud|deel|les|lessen|hoofdstuk\\w*|tekst",
  "conteudos?|licao|licoes|aulas?|secao|secoes",
);
const CONTENT_OF =
  /\b(?:contents?|full text|inhalt|contenu|contenido|contenuto|inhoud|conteudo) (?:of|von|des|der|du|de la|del|della|van|do|da)\b/;
const PAYWALL =
  /\b(?:(?:behind|bypass|around|past) (?:the |your )?pay ?wall|bezahlschranke|premiuminhalt\w*|derriere le (?:paywall|mur payant)|muro de pago|dietro il paywall|betaalmuur|without paying|ohne zu (?:be)?zahlen|sans payer|sin pagar|senza pagare|zonder te betalen|sem pagar)\b/;
/** Speaks of what is inside, not of the offer. */
const INSIDE = either(
  DEMAND,
  any(
    "what(?: s| is| does| do| are| did)?|explain|unlock|bypass|contents? of|full text|translate|answer",
    "was (?:steht|ist|sagt|enthalt)|erklar\\w*",
    "que (?:dit|contient|contiennent)|qu est ce que|qu y a t il|explique\\w*",
    "que (?:dice|hay|contiene)|explica\\w*",
    "cosa (?:dice|c e|contiene)|che cosa|spiega\\w*",
    "wat (?:staat|zegt|is)|leg\\b.*\\buit",
    "o que (?:diz|ha|contem)|explique",
  ),
);
const BUYING = any(
  "how much|prices?|costs?|buy|purchas\\w*|subscri(?:be|bing|ption)\\w*|access to|get access|sign up|join|included?|includes|difference|worth|refund\\w*|cancel\\w*|is there|do you (?:have|offer|sell)|how (?:do|can|to)|where can|trial",
  "was kostet|kosten|wie viel|preis\\w*|kauf\\w*|zugang|abonnier\\w*|enthalten|gibt es|unterschied",
  "combien|prix|achet\\w*|abonn\\w*|acceder|acces|compris\\w*|inclus\\w*",
  "cuanto|precio\\w*|compra\\w*|suscrib\\w*|acceso|acceder|incluye\\w*",
  "quanto|prezz\\w*|acquist\\w*|abbonar\\w*|accesso|accedere",
  "hoeveel|prijs|koop|kopen|abonner\\w*|toegang|inbegrepen",
  "preco\\w*|comprar|assinar|acesso|acessar",
);

const matters: Matter[] = [
  { what: INSTRUCTIONS },
  {
    what: near(SECRETS, SOMEBODY),
    wish: WISH,
    harmless: any(
      "how (?:do|can|to|does)|protect\\w*|stor\\w*|encrypt\\w*|manager",
      "wie (?:schutz|speicher)\\w*|schutz\\w*",
      "comment",
      "como",
      "come",
      "hoe",
    ),
  },
  { what: SECRETS, wish: WISH, harmless: KEEPING },
  { what: BARE_SECRETS, wish: WISH, harmless: KNOWN_SECRETS },
  { what: either(near(PEOPLE, RECORDS), COMPOUND_RECORDS), wish: WISH, harmless: CARE },
  { what: DOINGS },
  { what: either(ADJECTIVE_FIRST, INNER_THINGS), wish: WISH, harmless: CARE },
  {
    what: new RegExp(
      `${PAID.source} (?:\\S+ )?${BODIES.source}|${BODIES.source} ${PAID.source}|\\bpremium(?:inhalt|lektion|bereich)\\w*|${CONTENT_OF.source} (?:\\S+ ){0,2}${PAID.source}`,
    ),
    wish: INSIDE,
    harmless: BUYING,
  },
  { what: PAYWALL },
];
/** Public parts of a business whose names hold a word of the lists above. */
const INNOCENT_NAMES =
  /\b(?:customer|client|guest|member|user) (?:service|support|care|success|relations|portal|reviews?|satisfaction)\b/g;
const SPELLED_OUT = /\b(?:\p{L} ){4,}\p{L}\b/gu;
const QUESTION_READ = 4000;

/**
 * The sentence that declines, in the question's language, where a question is about secrets, credentials, other people's
 * data, internal matter, the assistant's own instructions or paid-only text (specification "Answer rules"); else null.
 */
export function refusal(question: string): string | null {
  return isRefused(question) ? phrases[languageOf(question)].refused : null;
}

function isRefused(question: string): boolean {
  const asked = plain(question);
  return matters.some(({ what, wish, harmless }) => {
    return what.test(asked) && (wish?.test(asked) ?? true) && !(harmless?.test(asked) ?? false);
  });
}

/** Lower case words without accents and marks, with the usual disguises of letters taken off. */
function plain(question: string): string {
  const words = visibleCharacters(question.slice(0, QUESTION_READ))
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll("ß", "ss")
    .replace(/p[a@4](?:ss|\$\$|s5|55)w[o0]r[dt]/g, (word) => (word.endsWith("t") ? "passwort" : "password"))
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
  return words.replace(SPELLED_OUT, (letters) => letters.replaceAll(" ", "")).replace(INNOCENT_NAMES, " ");
}
